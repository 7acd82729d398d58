/*
 * How the kernels of one rank follow each other when calls hand over, in peer.cuh and PeerHandover.java: blocks of the next
 * call's kernel may be on the GPU before those of the one before have ended. script/check-protocol runs it.
 *
 * Any of the calls may be of a kernel that does not hand over, or not follow, and is launched at the end then. In any block
 * of any call something may fail, after which no further call does anything.
 *
 * Checked, besides that all kernels end: as long as nothing has failed, each block has the number of its own call, and does
 * nothing before all blocks of the call before have done their work.
 */

#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef CALLS
#define CALLS 4
#endif

byte call; /* the words of the mailbox */
byte leaving;
byte handed;
byte sent;
byte done;
bit broken;

bit hands[CALLS + 1];     /* whether a call hands over, */
bit follows[CALLS + 1];   /* and whether it may begin before the end of one that does */
byte launches[CALLS + 1]; /* that hand over, up to a call: what the host counts */
byte worked[CALLS + 1];   /* blocks */
byte ended[CALLS + 1];

inline hand_over() {
  if
  :: hands[me] ->
    atomic { sent++; last = sent == BLOCKS };
    if
    :: last ->
      sent = 0;
#ifdef HANDED_FIRST
      handed++;
      leaving = number
#else
      leaving = number;
      handed++
#endif
    :: else
    fi
  :: else
  fi
}

proctype block(byte me) {
  byte before, number;
  bit last, stopped;
  /* The kernel is launched. */
  if
  :: me == 1
  :: me > 1 && !(hands[me - 1] && follows[me]) && ended[me - 1] == BLOCKS
  :: me > 1 && hands[me - 1] && follows[me] && handed >= launches[me - 1]
  fi;
#ifndef NO_TURN
  before = leaving;
#ifdef NO_LOOK_AT_BROKEN
  call >= before;
#else
  call >= before || broken;
#endif
#endif
  atomic { number = call + 1; stopped = broken };
  if
  :: stopped ->
#ifndef SILENT_WHEN_BROKEN
    hand_over()
#endif
  :: else ->
    assert(broken || number == me);
    assert(broken || me == 1 || worked[me - 1] == BLOCKS);
    if
    :: broken = 1
    :: skip
    fi;
    hand_over();
    worked[me]++;
    atomic { done++; last = done == BLOCKS };
    if
    :: last ->
#ifdef CALL_FIRST
      call = number;
      done = 0
#else
      done = 0;
      call = number
#endif
    :: else
    fi
  fi;
  ended[me]++
}

init {
  byte k = 1, b;
  atomic {
    do
    :: k <= CALLS ->
      if
      :: hands[k] = 1; follows[k] = 1
      :: follows[k] = 1
      :: skip
      fi;
      launches[k] = launches[k - 1] + hands[k];
      b = 0;
      do
      :: b < BLOCKS -> run block(k); b++
      :: else -> break
      od;
      k++
    :: else -> break
    od
  }
}
