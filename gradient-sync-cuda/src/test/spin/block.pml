/*
 * How the threads of a block of stream, in chunks.cuh, wait for each other: warps of workers, which send chunks and reduce
 * them, and the messenger, which raises flags and waits for the other ranks'. It may find at any chunk that others do
 * not come; then all must reach the end. With STAGED, a block of staged, whose workers also collect chunks, and which
 * has two flags more than chunks.
 *
 * peer.pml takes a block for one thread. Checked here is what that rests on: a flag is raised when all workers have sent
 * that chunk, reduced the one two before, and collected the one four before; a chunk is reduced when its flags have been
 * seen, and collected when the flags two later have been seen. Nobody ends well before all that.
 */

#define WORKERS 2
#ifndef CHUNKS
#define CHUNKS 6
#endif
#ifdef STAGED
#define FLAGS (CHUNKS + 2)
#else
#define FLAGS CHUNKS
#endif
#ifndef COLLECT_AFTER
#define COLLECT_AFTER 3 /* steps */
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
byte collected[WORKERS];
byte seen;

#define MIN(x, y) ((x) < (y) -> (x) : (y))
#ifdef STAGED
#define HAS_COLLECTED(worker, chunks) (collected[worker] >= (chunks))
#else
#define HAS_COLLECTED(worker, chunks) true
#endif
#define HAS_DONE(worker) (sent[worker] >= MIN(c + 1, CHUNKS) && reduced[worker] + 1 >= MIN(c, CHUNKS + 1) && \
  HAS_COLLECTED(worker, c - 3))

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
  :: c <= FLAGS ->
     if
     :: c < CHUNKS -> sent[_pid] = c + 1
     :: else
     fi;
     if
     :: c < FLAGS -> arrive(SENT + (c & 1))
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
        if
        :: c <= CHUNKS -> assert(seen >= c); reduced[_pid] = c
        :: else
        fi;
#ifdef STAGED
        if
        :: c >= COLLECT_AFTER && c - COLLECT_AFTER < CHUNKS ->
           collected[_pid] = c - COLLECT_AFTER + 1;
           assert(seen >= collected[_pid] + 2)
        :: else
        fi
#endif
     :: else
     fi;
     c++
  :: else -> break
  od;
  assert(hopeless != NEVER || (reduced[_pid] == CHUNKS && HAS_COLLECTED(_pid, CHUNKS)));
  await(END)
}

active proctype messenger() {
  byte c;
  bit before;
  do
  :: c < FLAGS && hopeless == NEVER ->
     await(SENT + (c & 1));
     assert(HAS_DONE(0) && HAS_DONE(1));
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
