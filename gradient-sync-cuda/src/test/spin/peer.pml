/*
 * How the ranks of peer.cuh wait for each other. script/check-protocol runs it, with and without deliberate mistakes.
 *
 * N ranks make endlessly many calls, each of a way that all agree on: one-shot, two-shot, stream, staged, broadcast (with
 * PARTS each receiver forwards a part to the other one). A
 * rank may be arbitrarily slow at each step. With MISMATCH ranks may take another plan than the first one in a call has
 * taken, and all must find that. With GIVE_UP one rank gives up a call, as after its time limit, and all others must stop
 * without one of theirs. No rank makes another call after a failure, except for a mismatch with GO_ON, which shows that
 * the headers alone would allow it.
 *
 * What a rank writes for another is under way (`sent`) until it is there (`seen`). It arrives in any order; only a flag
 * waits for the data and the results that its rank wrote before it (it is a release). A line of 128 bytes arrives as a
 * whole, and so does a word. Of two writes to the same place the later one stays. That kernels follow each other on one
 * rank orders nothing else.
 *
 * A rank is one process. Lines of different warps are the ROUNDS, which are taken in any order. A block of stream deals
 * with the same block of the other ranks alone, and shares with other blocks only the headers, which therefore are not
 * ordered before the flags here; how its threads wait for each other is in block.pml. A block of staged does, too. A
 * header is on its way as soon as its rank has entered a call.
 *
 * Stream and staged use the same staging, divided in different ways: see DATA. A kernel begins when all blocks of the
 * one before it have ended, so one block for each rank is enough to show what the next call writes over. As the staging
 * lies, staged would not even need its flags at the end (NO_END_OF_STAGED): who has seen the last chunk flags knows that
 * all contributions have been reduced, and stream comes to the cells of results with its third chunk only, for which it
 * needs flags that the others raise in that call. If results lay in front (RESULTS_FIRST), it would need them.
 *
 * Checked, besides that nobody waits for ever:
 *   - what a rank takes is the sender's, of this call, plan and chunk;
 *   - nobody ends a call, well or with a mismatch, before all have entered it;
 *   - a buffer changes only when all ranks have entered this call with the same plan, and another rank's buffer only
 *     after that rank has read what was there and before it has left;
 *   - when a rank leaves stream, all results are in its buffer;
 *   - what staged writes into is not under way from before;
 *   - a call in which plans differ ends with a mismatch on all ranks, and another call on none.
 *
 * Numbers of calls count modulo CALLS and are compared by their difference, so they wrap around again and again. They
 * stand for 40 bits: a word that is so old that it would pass for a new one is set to 0, which is before all calls.
 * That leaves out nothing: with 40 bits it would be before all calls that are still to be compared with it.
 *
 * Two abstractions make three ranks small enough. They leave out nothing either, for the protocol as it is:
 *   FORGET  What a rank has of a call that it has left is 0, too. It would be before all its next calls.
 *   PROMPT  What is waited for is there at once. Whoever waits may still look as late as it likes, and what this writes
 *           over is gone the sooner.
 */

#ifndef N
#define N 2 /* ranks: 2 or 3 */
#endif
#ifndef CALLS
#define CALLS 4 /* even, 14 at most */
#endif
#ifndef ROUNDS
#define ROUNDS 1 /* lines from each rank to each other: 1 or 2 */
#endif
#ifndef CHUNKS
#define CHUNKS 2 /* of stream, 14 at most, and of staged, 12 at most */
#endif
#ifndef SLOTS
#define SLOTS 4 /* of contributions; with 3, spin finds an error */
#endif
#ifndef RESULT_SLOTS
#define RESULT_SLOTS 4 /* of staged */
#endif
#ifndef FLAGS
#define FLAGS (CHUNKS + 2) /* of staged */
#endif
#ifndef COLLECT_AFTER
#define COLLECT_AFTER 3 /* steps, in staged */
#endif
#ifndef PROMPT
#define PROMPT 0 /* 1: for lines, data and results, 2: for flags as well */
#endif
#if defined PARTS && N != 3
#error "parts of a broadcast are for three ranks"
#endif
#ifndef MISMATCH
#define MISMATCH 0 /* 1: of one rank in a call, 2: of any */
#endif

/* A word: the call, and below it the plan or the chunk. 0 is before all calls. */
#define WORD(call, low) ((((call) + 1) << 4) + (low))
#define IS_OF(word, call) ((word) >> 4 == (call) + 1)
#define AHEAD(other, call) (((other) + CALLS - (call)) % CALLS)
#define REACHED(word, call) ((word) && AHEAD(((word) >> 4) - 1, call) < CALLS / 2)
#define IS_DONE(word) (IS_OF(word, call) && ((word) & 15) != GAVE_UP)
#define TOO_OLD(word) IS_OF(word, (newest + CALLS / 2 - 1) % CALLS)

/* Plans: the low three bits say which way. */
#define ONE_SHOT_PLAN 0
#define TWO_SHOT_PLAN 1
#define STREAM_PLAN 2
#define STAGED_PLAN 3
#define BROADCAST_PLAN 4 /* plus the root */
#define WAY(plan) ((plan) & 7)
#define ANOTHER 8
#define GAVE_UP 15 /* instead of the plan */

/* Places that a rank has for each other rank. */
#define HEADER 0                     /* of even and of odd calls */
#define LINE (HEADER + 2)            /* of one-shot and broadcast, of even and of odd calls */
#define SHARD_LINE (LINE + 2 * ROUNDS)
#define RESULT_LINE (SHARD_LINE + ROUNDS)
#define CHUNK_FLAG (RESULT_LINE + ROUNDS)
#define END_FLAG (CHUNK_FLAG + 1)
#define DATA (END_FLAG + 1)          /* staging */
#define BUFFER (DATA + CELLS)        /* where stream puts the other rank's results */
#define PLACES (BUFFER + 1)
#define PAIRS (N * (N - 1))
#define AT(place, to, from) ((place) * PAIRS + (to) * (N - 1) + (from) - ((from) > (to)))

/*
 * Staging. Its cells are as large as the slots of staged, which has one for each sender: first those of contributions,
 * then those of results. A slot of stream is two cells: with two ranks it is two slots of staged, and with three ranks
 * one slot of both senders. Without staged, a slot of stream is one cell.
 */
#ifdef STAGED
#define CELLS 8
#ifdef RESULTS_FIRST
#define CONTRIBUTION(chunk) (DATA + 4 + (chunk) % SLOTS)
#define RESULT(chunk) (DATA + (chunk) % RESULT_SLOTS)
#else
#define CONTRIBUTION(chunk) (DATA + (chunk) % SLOTS)
#define RESULT(chunk) (DATA + 4 + (chunk) % RESULT_SLOTS)
#endif
#if N == 3 && defined STREAM && PROMPT == 0
#error "what a rank has under way to a cell is not told from what another has"
#endif
#else
#define CELLS SLOTS
#endif

byte sent[PLACES * PAIRS];
byte seen[PLACES * PAIRS];

/* For the assertions, and to agree. */
byte newest;       /* call that any rank has entered */
byte agreed;       /* the plan of that call */
byte entered[N];   /* call that each rank has entered last */
byte left[N];      /* call that each rank has left last, but for those that failed */
byte plans[2 * N]; /* its plan, of even and of odd calls */
byte read[N];      /* chunks that it has read from its buffer */
bit given_up;      /* whether a rank has, for no reason that others can see */
byte i;            /* of loops; 0 outside */

/* The deliberate mistakes, and what is right. */
#ifdef ONE_PARITY
#define LINES LINE
#else
#define LINES (LINE + (call & 1) * ROUNDS)
#endif
#ifdef ONE_HEADER
#define HEADERS HEADER
#else
#define HEADERS (HEADER + (call & 1))
#endif
#ifdef NO_PLAN_IN_LINES
#define LINE_IS_HERE(place, rank) IS_OF(seen[AT(place, me, rank)], call)
#else
#define LINE_IS_HERE(place, rank) (seen[AT(place, me, rank)] == WORD(call, plan))
#endif
#ifdef RELAXED_FLAGS
#define NOT_UNDER_WAY(place, to, from) true
#else
#define NOT_UNDER_WAY(place, to, from) !sent[AT(place, to, from)]
#endif
#ifdef NO_HEADER_FOR_RESULTS
#define MAY_CHANGE_BUFFERS true
#else
#define MAY_CHANGE_BUFFERS ALL(HEADER_IS_SAME, 0)
#endif
#ifdef NO_WAITING_ROOT
#define ROOT_MAY_SEND true
#else
#define ROOT_MAY_SEND ALL(HEADER_IS_SAME, 0)
#endif
#ifdef NOT_ALL_HEADERS
#define ALL_HEADERS_ARE_HERE true
#else
#define ALL_HEADERS_ARE_HERE ALL(HEADER_IS_HERE, 0)
#endif
#define MISMATCH_FOUND (ANY(HEADER_DIFFERS, 0) && ALL_HEADERS_ARE_HERE && !ANY(HAS_GIVEN_UP, 0))

#define A ((me + 1) % N)
#define B ((me + 2) % N)
#if N == 2
#define ALL(what, x) what(x, A)
#define ANY(what, x) what(x, A)
#define WRITE(array, place, word) array[AT(place, A, me)] = FOR(A, word)
#else
#define ALL(what, x) (what(x, A) && what(x, B))
#define ANY(what, x) (what(x, A) || what(x, B))
#define WRITE(array, place, word) array[AT(place, A, me)] = FOR(A, word); array[AT(place, B, me)] = FOR(B, word)
#endif
#define SEND(place, word) WRITE(sent, place, word)
#if PROMPT >= 1
#define SEND_DATA(place, word) WRITE(seen, place, word)
#else
#define SEND_DATA(place, word) SEND(place, word)
#endif
#if PROMPT >= 2
#define SEND_FLAG(place, word) WRITE(seen, place, word)
#else
#define SEND_FLAG(place, word) SEND(place, word)
#endif
#ifdef FORGET
#define FOR(rank, word) (IS_IN(0, rank) || !HAS_ENTERED(0, rank) || (word & 15) == GAVE_UP -> word : 0)
#else
#define FOR(rank, word) word
#endif
#if ROUNDS == 1
#define SEND_LINES(place) SEND_DATA(place, WORD(call, plan))
#else
#define SEND_LINES(place) SEND_DATA(place, WORD(call, plan)); SEND_DATA(place + 1, WORD(call, plan))
#endif

#define ROOT (WAY(plan) - BROADCAST_PLAN)
#ifdef PARTS
#define RECEIVER (3 - me - ROOT) /* the other one of three ranks */
#define BROADCAST_LINES (2 * ROUNDS)
#if PROMPT >= 1
#define FORWARD(place) seen[AT(place, RECEIVER, me)] = FOR(RECEIVER, WORD(call, plan))
#else
#define FORWARD(place) sent[AT(place, RECEIVER, me)] = FOR(RECEIVER, WORD(call, plan))
#endif
#else
#define BROADCAST_LINES ROUNDS
#define FORWARD(place) skip
#endif

/* About another rank: what is so, */
#define IS_IN(x, rank) (entered[rank] == call && left[rank] != call)
#define HAS_ENTERED(x, rank) (AHEAD(entered[rank], call) <= 1)
#define AGREES(x, rank) (plans[2 * (rank) + (call & 1)] == plan)
#define CONFORMS(x, rank) (entered[rank] != call || plans[2 * (rank) + (call & 1)] == agreed)
#define HAS_READ(chunk, rank) (read[rank] > (chunk))
/* and what is to be seen. */
#define HEADER_IS_HERE(x, rank) IS_OF(seen[AT(HEADERS, me, rank)], call)
#define HEADER_IS_SAME(x, rank) (seen[AT(HEADERS, me, rank)] == WORD(call, plan))
#define HEADER_DIFFERS(x, rank) (HEADER_IS_HERE(x, rank) && !HEADER_IS_SAME(x, rank))
#define GIVES_UP(word) (((word) & 15) == GAVE_UP && AHEAD(call, ((word) >> 4) - 1) <= 1)
#define HAS_GIVEN_UP(x, rank) (GIVES_UP(seen[AT(HEADER, me, rank)]) || GIVES_UP(seen[AT(HEADER + 1, me, rank)]))
#define CHUNK_IS_HERE(chunk, rank) \
  (REACHED(seen[AT(CHUNK_FLAG, me, rank)], call) && \
   (!IS_OF(seen[AT(CHUNK_FLAG, me, rank)], call) || seen[AT(CHUNK_FLAG, me, rank)] >= WORD(call, chunk)))
#define END_IS_HERE(x, rank) REACHED(seen[AT(END_FLAG, me, rank)], call)
#define IS_AT(place, chunk, rank) (seen[AT(place, me, rank)] == WORD(call, chunk))
#ifdef STAGED
#define IS_CHUNK(chunk, rank) (IS_AT(CELL(chunk), chunk, rank) && IS_AT(CELL(chunk) + 1, chunk, rank))
#define CELL(chunk) (DATA + 2 * ((chunk) % SLOTS))
#else
#define IS_CHUNK(chunk, rank) IS_AT(DATA + (chunk) % SLOTS, chunk, rank)
#endif
#define IS_CONTRIBUTION(chunk, rank) IS_AT(CONTRIBUTION(chunk), chunk, rank)
#define IS_RESULT(chunk, rank) IS_AT(RESULT(chunk), chunk, rank)
#define HAS_ARRIVED(place, rank) !sent[AT(place, rank, me)]
#define RESULTS_ARE_HERE(x, rank) (seen[AT(BUFFER, me, rank)] == WORD(call, CHUNKS - 1))

/* Where something is taken. */
#define CHECK_ALL assert(ALL(HAS_ENTERED, 0) && ALL(AGREES, 0))
#ifndef STAGED
#define SEND_CHUNK(chunk) SEND_DATA(DATA + (chunk) % SLOTS, WORD(call, chunk))
#elif N == 2
#define SEND_CHUNK(chunk) SEND_TO_STAGING(CELL(chunk), chunk); SEND_TO_STAGING(CELL(chunk) + 1, chunk)
#else /* this rank is the second after A, and the first after B */
#define SEND_CHUNK(chunk) \
  seen[AT(CELL(chunk) + 1, A, me)] = FOR(A, WORD(call, chunk)); \
  seen[AT(CELL(chunk) + 1, A, B)] = FOR(A, WORD(call, chunk)); \
  seen[AT(CELL(chunk), B, me)] = FOR(B, WORD(call, chunk)); seen[AT(CELL(chunk), B, A)] = FOR(B, WORD(call, chunk))
#endif
#define SEND_TO_STAGING(place, chunk) assert(ALL(HAS_ARRIVED, place)); SEND_DATA(place, WORD(call, chunk))
#define CONTRIBUTE \
  SEND_CHUNK(todo); SEND_FLAG(CHUNK_FLAG, WORD(call, todo)); read[me] = todo + 1
#define CONTRIBUTE_NEXT(chunk) if :: chunk < CHUNKS -> SEND_TO_STAGING(CONTRIBUTION(chunk), chunk) :: else fi
#define CHECK_MISMATCH assert(ALL(HAS_ENTERED, 0) && !ALL(AGREES, 0))
#ifdef GO_ON
#define OR_MISMATCH :: atomic { MISMATCH_FOUND -> CHECK_MISMATCH; leave(); goto enter }
#else
#define OR_MISMATCH :: atomic { MISMATCH_FOUND -> CHECK_MISMATCH; goto end_of_all }
#endif
#ifdef GIVE_UP
#define OR_FAIL OR_MISMATCH \
  :: atomic { !given_up -> given_up = true; SEND(HEADERS, WORD(call, GAVE_UP)); goto end_of_all } \
  :: atomic { ANY(HAS_GIVEN_UP, 0) -> SEND(HEADERS, WORD(call, GAVE_UP)); goto end_of_all }
#else
#define OR_FAIL OR_MISMATCH
#endif
#define TAKEN(bit) CHECK_ALL; todo = todo & ~(bit); if :: todo == 0 -> leave(); goto enter :: else fi

inline choose(way) {
  if
#ifdef ONE_SHOT
  :: way = ONE_SHOT_PLAN
#endif
#ifdef TWO_SHOT
  :: way = TWO_SHOT_PLAN
#endif
#ifdef STREAM
  :: way = STREAM_PLAN
#endif
#ifdef STAGED
  :: way = STAGED_PLAN
#endif
#ifdef BROADCAST
  :: way = BROADCAST_PLAN
  :: way = BROADCAST_PLAN + 1
#if N == 3
  :: way = BROADCAST_PLAN + 2
#endif
#endif
  fi
}

/* When a rank is the first in a call: the words that this call, or the one before, would take for later ones'. */
inline forget_the_oldest() {
  skip;
#ifndef SHORT_NUMBERS
  d_step {
    i = 0;
    do
    :: i < PLACES * PAIRS ->
       if :: TOO_OLD(sent[i]) -> sent[i] = 0 :: else fi;
       if :: TOO_OLD(seen[i]) -> seen[i] = 0 :: else fi;
       i++
    :: else -> break
    od;
    i = 0
  }
#endif
}

/* Those of the call before, when all ranks have left it; for fewer states. */
inline forget_the_plans() {
  if
  :: ALL(IS_IN, 0) ->
     d_step {
       i = 1 - (call & 1);
       do
       :: i < 2 * N -> plans[i] = 0; i = i + 2
       :: else -> break
       od;
       i = 0
     }
  :: else
  fi
}

inline leave() {
  d_step {
    left[me] = call;
    read[me] = 0;
    todo = 0;
    plan = 0;
#ifdef FORGET
    i = me * (N - 1);
    do
    :: i < PLACES * PAIRS ->
       if :: IS_DONE(sent[i]) -> sent[i] = 0 :: else fi;
       if :: IS_DONE(seen[i]) -> seen[i] = 0 :: else fi;
#if N == 3
       if :: IS_DONE(sent[i + 1]) -> sent[i + 1] = 0 :: else fi;
       if :: IS_DONE(seen[i + 1]) -> seen[i + 1] = 0 :: else fi;
#endif
       i = i + PAIRS
    :: else -> break
    od;
    i = 0
#endif
  }
}

active [N] proctype rank() {
  byte call;
  byte plan;
  byte todo; /* lines that are still to be taken, a bit for each; in stream and staged, the next chunk */
  byte me = _pid;

enter:
  true;
  atomic {
    call = (call + 1) % CALLS;
    if
    :: newest != call ->
       newest = call;
       forget_the_oldest();
       choose(agreed)
    :: else
    fi;
    if
    :: plan = agreed
#if MISMATCH
    :: MISMATCH == 2 || ALL(CONFORMS, 0) -> plan = agreed + ANOTHER
    :: MISMATCH == 2 || ALL(CONFORMS, 0) -> choose(plan)
#endif
    fi;
    entered[me] = call;
    plans[2 * me + (call & 1)] = plan;
    forget_the_plans();
    SEND(HEADERS, WORD(call, plan));
    if
    :: WAY(plan) == ONE_SHOT_PLAN -> SEND_LINES(LINES); todo = (1 << ROUNDS) - 1
    :: WAY(plan) == TWO_SHOT_PLAN -> SEND_LINES(SHARD_LINE); todo = (1 << (N * ROUNDS)) - 1
    :: WAY(plan) >= BROADCAST_PLAN -> todo = (1 << BROADCAST_LINES) - 1
    :: else
    fi
  }
  if
  :: WAY(plan) == ONE_SHOT_PLAN -> goto one_shot
  :: WAY(plan) == TWO_SHOT_PLAN -> goto two_shot
  :: WAY(plan) == STREAM_PLAN -> goto stream
#ifdef STAGED
  :: WAY(plan) == STAGED_PLAN -> goto staged
#endif
  :: WAY(plan) == BROADCAST_PLAN + me -> goto broadcast
  :: else -> goto await_broadcast
  fi;

one_shot:
  do
  :: atomic { todo & 1 && ALL(LINE_IS_HERE, LINES) -> TAKEN(1) }
#if ROUNDS == 2
  :: atomic { todo & 2 && ALL(LINE_IS_HERE, LINES + 1) -> TAKEN(2) }
#endif
  OR_FAIL
  od;

two_shot: /* bits for each round: the shard, and each other rank's results, which a warp takes after the shard */
  do
  :: atomic { todo & 1 && ALL(LINE_IS_HERE, SHARD_LINE) -> SEND_DATA(RESULT_LINE, WORD(call, plan)); TAKEN(1) }
  :: atomic { todo & 2 && !(todo & 1) && LINE_IS_HERE(RESULT_LINE, A) -> TAKEN(2) }
#if N == 3
  :: atomic { todo & 4 && !(todo & 1) && LINE_IS_HERE(RESULT_LINE, B) -> TAKEN(4) }
#endif
#if ROUNDS == 2
#define SECOND (1 << N)
  :: atomic {
       todo & SECOND && ALL(LINE_IS_HERE, SHARD_LINE + 1) ->
       SEND_DATA(RESULT_LINE + 1, WORD(call, plan));
       TAKEN(SECOND)
     }
  :: atomic {
       todo & 2 * SECOND && !(todo & SECOND) && LINE_IS_HERE(RESULT_LINE + 1, A) -> TAKEN(2 * SECOND)
     }
#if N == 3
  :: atomic {
       todo & 4 * SECOND && !(todo & SECOND) && LINE_IS_HERE(RESULT_LINE + 1, B) -> TAKEN(4 * SECOND)
     }
#endif
#endif
  OR_FAIL
  od;

broadcast:
  if
  :: atomic { ROOT_MAY_SEND -> CHECK_ALL; SEND_LINES(LINES); leave(); goto enter }
  OR_FAIL
  fi;

await_broadcast: /* with parts, also the lines that the other receiver forwards */
  do
  :: atomic { todo & 1 && LINE_IS_HERE(LINES, ROOT) -> FORWARD(LINES); TAKEN(1) }
#if ROUNDS == 2
  :: atomic { todo & 2 && LINE_IS_HERE(LINES + 1, ROOT) -> FORWARD(LINES + 1); TAKEN(2) }
#endif
#ifdef PARTS
  :: atomic { todo & (1 << ROUNDS) && LINE_IS_HERE(LINES, RECEIVER) -> TAKEN(1 << ROUNDS) }
#if ROUNDS == 2
  :: atomic { todo & (2 << ROUNDS) && LINE_IS_HERE(LINES + 1, RECEIVER) -> TAKEN(2 << ROUNDS) }
#endif
#endif
  OR_FAIL
  od;

stream: /* the workers and the messenger of a block are one, as each waits for the other between these steps */
  atomic { CONTRIBUTE; todo = 1 };
  do
  :: atomic {
       if
       :: todo < CHUNKS -> CONTRIBUTE
       :: else
       fi
     }
     if
     :: atomic { ALL(CHUNK_IS_HERE, todo - 1) && (todo > 1 || MAY_CHANGE_BUFFERS) -> CHECK_ALL }
     OR_FAIL
     fi;
     atomic {
       assert(ALL(IS_CHUNK, todo - 1));
       assert(ALL(IS_IN, 0) && ALL(HAS_READ, todo - 1));
       SEND_DATA(BUFFER, WORD(call, todo - 1));
       if
       :: todo < CHUNKS -> todo++
       :: else -> break
       fi
     }
  od;
#ifndef NO_END_FLAGS
  atomic { SEND_FLAG(END_FLAG, WORD(call, 0)) };
  if
  :: ALL(END_IS_HERE, 0)
  OR_FAIL
  fi;
#endif
  atomic {
    assert(ALL(RESULTS_ARE_HERE, 0));
    leave();
    goto enter
  }

#ifdef STAGED
staged: /* likewise, but the messenger raises the next flag when all have come, and the workers go on meanwhile */
  atomic { SEND_TO_STAGING(CONTRIBUTION(0), 0); SEND_FLAG(CHUNK_FLAG, WORD(call, 0)) };
  atomic { todo = 1; CONTRIBUTE_NEXT(1) };
  do
  :: if
     :: atomic {
          todo > FLAGS || (ALL(CHUNK_IS_HERE, todo - 1) && (todo > 1 || MAY_CHANGE_BUFFERS)) ->
          CHECK_ALL;
          if
          :: todo < FLAGS -> SEND_FLAG(CHUNK_FLAG, WORD(call, todo))
          :: else
          fi
        }
     OR_FAIL
     fi;
     atomic {
       if
       :: todo <= CHUNKS ->
          assert(ALL(IS_CONTRIBUTION, todo - 1));
          SEND_TO_STAGING(RESULT(todo - 1), todo - 1)
       :: else
       fi;
       if
       :: todo >= COLLECT_AFTER && todo - COLLECT_AFTER < CHUNKS -> assert(ALL(IS_RESULT, todo - COLLECT_AFTER))
       :: else
       fi;
       CONTRIBUTE_NEXT(todo + 1);
       if
       :: todo < CHUNKS + 2 -> todo++
       :: else -> break
       fi
     }
  od;
#ifndef NO_END_OF_STAGED
  atomic { SEND_FLAG(END_FLAG, WORD(call, 0)) };
  if
  :: ALL(END_IS_HERE, 0)
  OR_FAIL
  fi;
#endif
  atomic { leave(); goto enter }
#endif

end_of_all: /* of this rank, after a failure */
  false
}

#define ARRIVE(place, to, from) \
  :: d_step { sent[AT(place, to, from)] -> seen[AT(place, to, from)] = sent[AT(place, to, from)]; sent[AT(place, to, from)] = 0 }
#ifdef STAGED
#define NO_DATA_UNDER_WAY(to, from) (NOT_UNDER_WAY(DATA, to, from) && NOT_UNDER_WAY(DATA + 1, to, from) && \
  NOT_UNDER_WAY(DATA + 2, to, from) && NOT_UNDER_WAY(DATA + 3, to, from) && NOT_UNDER_WAY(DATA + 4, to, from) && \
  NOT_UNDER_WAY(DATA + 5, to, from) && NOT_UNDER_WAY(DATA + 6, to, from) && NOT_UNDER_WAY(DATA + 7, to, from) && \
  NOT_UNDER_WAY(BUFFER, to, from))
#elif SLOTS == 4
#define NO_DATA_UNDER_WAY(to, from) (NOT_UNDER_WAY(DATA, to, from) && NOT_UNDER_WAY(DATA + 1, to, from) && \
  NOT_UNDER_WAY(DATA + 2, to, from) && NOT_UNDER_WAY(DATA + 3, to, from) && NOT_UNDER_WAY(BUFFER, to, from))
#else
#define NO_DATA_UNDER_WAY(to, from) (NOT_UNDER_WAY(DATA, to, from) && NOT_UNDER_WAY(DATA + 1, to, from) && \
  NOT_UNDER_WAY(DATA + 2, to, from) && NOT_UNDER_WAY(BUFFER, to, from))
#endif
#define ARRIVE_AFTER_DATA(place, to, from) \
  :: d_step { \
       sent[AT(place, to, from)] && NO_DATA_UNDER_WAY(to, from) -> \
       seen[AT(place, to, from)] = sent[AT(place, to, from)]; sent[AT(place, to, from)] = 0 \
     }
#if N == 2
#define EACH(what, place) what(place, 0, 1) what(place, 1, 0)
#else
#define EACH(what, place) \
  what(place, 0, 1) what(place, 1, 0) what(place, 0, 2) what(place, 2, 0) what(place, 1, 2) what(place, 2, 1)
#endif

active proctype links() {
end:
  do
  EACH(ARRIVE, HEADER)
  EACH(ARRIVE, HEADER + 1)
#if defined ONE_SHOT || defined BROADCAST
  EACH(ARRIVE, LINE)
  EACH(ARRIVE, LINE + 1)
#if ROUNDS == 2
  EACH(ARRIVE, LINE + 2)
  EACH(ARRIVE, LINE + 3)
#endif
#endif
#ifdef TWO_SHOT
  EACH(ARRIVE, SHARD_LINE)
  EACH(ARRIVE, RESULT_LINE)
#if ROUNDS == 2
  EACH(ARRIVE, SHARD_LINE + 1)
  EACH(ARRIVE, RESULT_LINE + 1)
#endif
#endif
#if defined STREAM || defined STAGED
  EACH(ARRIVE_AFTER_DATA, CHUNK_FLAG)
  EACH(ARRIVE_AFTER_DATA, END_FLAG)
  EACH(ARRIVE, DATA)
  EACH(ARRIVE, DATA + 1)
  EACH(ARRIVE, DATA + 2)
#if SLOTS == 4 || defined STAGED
  EACH(ARRIVE, DATA + 3)
#endif
#ifdef STAGED
  EACH(ARRIVE, DATA + 4)
  EACH(ARRIVE, DATA + 5)
  EACH(ARRIVE, DATA + 6)
  EACH(ARRIVE, DATA + 7)
#endif
  EACH(ARRIVE, BUFFER)
#endif
  od
}
