/*
 * How the threads of a block of stream, in peer.cuh, wait for each other: warps of workers, which send chunks and reduce
 * them, and the messenger, which raises flags and waits for the other ranks'. It may find at any chunk that others do
 * not come; then all must reach the end.
 *
 * peer.pml takes a block for one thread. Checked here is what that rests on: a flag is raised when all workers have sent
 * that chunk and reduced the one two before, and a chunk is reduced when its flags have been seen.
 */

#define WORKERS 2
#ifndef CHUNKS
#define CHUNKS 6
#endif
#define SENT 0     /* barriers, each for even and odd chunks */
#define RECEIVED 2
#define END 4
#define NEVER 255

byte come[5];
bit turn[5];
byte hopeless = NEVER; /* the chunk that did not come */

byte sent[WORKERS]; /* chunks; for the assertions */
byte reduced[WORKERS];
byte seen;

inline arrive(barrier) {
  d_step {
    come[barrier]++;
    if
    :: come[barrier] == WORKERS + 1 -> come[barrier] = 0; turn[barrier] = 1 - turn[barrier]
    :: else
    fi
  }
}

inline await(barrier) {
  atomic { before = turn[barrier]; arrive(barrier) };
  turn[barrier] != before
}

active [WORKERS] proctype worker() {
  byte c;
  bit before;
  do
  :: c <= CHUNKS ->
     if
     :: c < CHUNKS -> sent[_pid] = c + 1; arrive(SENT + (c & 1))
     :: else
     fi;
     if
     :: c > 0 ->
        await(RECEIVED + ((c - 1) & 1));
#ifdef ANY_HOPELESS /* the mistake: some workers may see a later chunk's failure, and others not yet */
        if
        :: hopeless != NEVER -> break
#else
        if
        :: hopeless <= c - 1 -> break
#endif
        :: else
        fi;
        assert(seen >= c);
        reduced[_pid] = c
     :: else
     fi;
     c++
  :: else -> break
  od;
  await(END)
}

active proctype messenger() {
  byte c;
  bit before;
  do
  :: c < CHUNKS && hopeless == NEVER ->
     await(SENT + (c & 1));
     assert(sent[0] > c && sent[1] > c && reduced[0] + 1 >= c && reduced[1] + 1 >= c);
     if
     :: seen = c + 1
     :: hopeless = c
     fi;
     arrive(RECEIVED + (c & 1));
     c++
  :: else -> break
  od;
  await(END)
}
