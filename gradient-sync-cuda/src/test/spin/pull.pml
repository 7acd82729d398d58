/*
 * How the ranks of pull.cuh wait for each other. script/check-protocol runs it, with and without deliberate mistakes.
 *
 * N ranks make CALLS calls, and each may be arbitrarily slow. Before a call a rank writes its input, in the call it reads
 * the inputs of all others. What a rank has written is under way until it arrives, at any time; a header waits for the
 * input that was written before it, because of the fence in front of it. With MISMATCH one rank takes another plan in the
 * last call. One block for each rank is enough: a block deals with the same block of the other ranks alone, and a kernel
 * begins when all blocks of the one before it have ended.
 *
 * Checked, besides that nobody waits for ever: what is read is the input of this call; nobody reads in a call in which
 * the plans differ.
 *
 * Mistakes: NO_FENCE, a header that does not wait for the input. NO_BEGIN, no wait for the headers. NO_END, no wait for the
 * other ranks at the end.
 */

#ifndef N
#define N 3
#endif
#ifndef CALLS
#define CALLS 3
#endif
#define PLAN(r, call) ((r) == N - 1 && (call) == CALLS && mismatch)
#define HEADER(call, plan) ((call) * 2 + (plan))

byte written[N]; /* the call of each rank's input */
byte there[N];   /* and of what others see of it */
byte header[N * N * 2]; /* of rank s at rank r in even and odd calls: (r * N + s) * 2 + parity */
byte flag[N * N];       /* of rank s at rank r */
bool mismatch = false;

#ifdef MISMATCH
#define MAY_DIFFER 1
#else
#define MAY_DIFFER 0
#endif

/* What a rank has written arrives. */
active proctype arrival() {
end:
  do
  :: atomic { written[0] != there[0] -> there[0] = written[0] }
  :: atomic { N > 1 && written[1] != there[1] -> there[1] = written[1] }
#if N > 2
  :: atomic { written[2] != there[2] -> there[2] = written[2] }
#endif
  od
}

proctype rank(byte me) {
  byte call = 1, other;
  bool differs;
  do
  :: call > CALLS -> break
  :: else ->
    written[me] = call;
#ifndef NO_FENCE
    there[me] == call;
#endif
    other = 0;
    do
    :: other == N -> break
    :: other < N -> header[(other * N + me) * 2 + call % 2] = HEADER(call, PLAN(me, call)); other++
    od;
    differs = false;
    other = 0;
    do
    :: other == N -> break
    :: other < N ->
#ifndef NO_BEGIN
      header[(me * N + other) * 2 + call % 2] / 2 == call;
      differs = differs || header[(me * N + other) * 2 + call % 2] != HEADER(call, PLAN(me, call));
#endif
      other++
    od;
    if
    :: differs -> break
    :: else
    fi;
    assert(!mismatch || call < CALLS);
    other = 0;
    do
    :: other == N -> break
    :: other < N -> assert(other == me || there[other] == call); other++
    od;
    other = 0;
    do
    :: other == N -> break
    :: other < N -> flag[other * N + me] = call; other++
    od;
    other = 0;
    do
    :: other == N -> break
    :: other < N ->
#ifndef NO_END
      flag[me * N + other] >= call;
#endif
      other++
    od;
    call++
  od
}

init {
  byte r = 0;
  if
  :: MAY_DIFFER -> mismatch = true
  :: true
  fi;
  atomic {
    do
    :: r == N -> break
    :: r < N -> run rank(r); r++
    od
  }
}
