/*
 * How the ranks of put.cuh wait for each other. script/check-protocol runs it, with and without deliberate mistakes.
 *
 * N ranks make CALLS calls, and each may be arbitrarily slow. In a call a rank writes into the outputs of all others. What it
 * has written is under way until it arrives, at any time; a flag waits for what was written before it, because it is told
 * with tell_after_all. With MISMATCH one rank takes another plan in the last call. One block for each rank is enough: a block
 * deals with the same block of the other ranks alone, and a kernel begins when all blocks of the one before it have ended.
 *
 * Checked, besides that nobody waits for ever: an output is written only while its rank is in the same call; who leaves a
 * call has what all others have written in it; nobody writes in a call in which the plans differ.
 *
 * Mistakes: NO_RELEASE, a flag that does not wait for what was written. NO_BEGIN, no wait for the headers. NO_END, no wait for
 * the other ranks at the end.
 */

#ifndef N
#define N 3
#endif
#ifndef CALLS
#define CALLS 3
#endif
#define PLAN(r, call) ((r) == N - 1 && (call) == CALLS && mismatch)
#define HEADER(call, plan) ((call) * 2 + (plan))

byte at[N];             /* the call that each rank is in */
byte written[N * N];    /* the call in which rank s has written into the output of rank r: s * N + r */
byte there[N * N];      /* and of that what has arrived */
byte header[N * N * 2]; /* of rank s at rank r in even and odd calls: (r * N + s) * 2 + parity */
byte flag[N * N];       /* of rank s at rank r */
bool mismatch = false;

#ifdef MISMATCH
#define MAY_DIFFER 1
#else
#define MAY_DIFFER 0
#endif

#define ARRIVES(i) atomic { i < N * N && written[i] != there[i] -> there[i] = written[i] }

/* What a rank has written arrives. */
active proctype arrival() {
end:
  do
  :: ARRIVES(1)
  :: ARRIVES(2)
#if N > 2
  :: ARRIVES(3)
  :: ARRIVES(5)
  :: ARRIVES(6)
  :: ARRIVES(7)
#endif
  od
}

proctype rank(byte me) {
  byte call = 1, other;
  bool differs;
  do
  :: call > CALLS -> break
  :: else ->
    at[me] = call;
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
    :: other < N -> atomic { assert(at[other] == call); written[me * N + other] = (other == me -> 0 : call) }; other++
    od;
    other = 0;
    do
    :: other == N -> break
    :: other < N ->
#ifndef NO_RELEASE
      written[me * N + other] == there[me * N + other];
#endif
      flag[other * N + me] = call;
      other++
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
    other = 0;
    do
    :: other == N -> break
    :: other < N -> assert(other == me || there[other * N + me] == call); other++
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
