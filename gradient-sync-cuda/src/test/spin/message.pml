/*
 * How a block of message_send and one of message_receive in message.cu wait for each other. script/check-protocol runs it,
 * with and without deliberate mistakes.
 *
 * The sender writes chunk n into slot n % SLOTS of the receiver, once chunk n - SLOTS has been taken from there, and then
 * counts it. The receiver takes it and counts it for the sender. What the sender writes arrives at any time; a count waits
 * for the chunk before it (it is a release). Where one message ends and the next begins makes no difference to the counts.
 *
 * Checked, besides that nobody waits for ever: each chunk is taken once, and in order.
 *
 * Mistakes: WINDOW, one chunk more under way than slots. RELAXED, a count that overtakes its chunk.
 */

#ifndef CHUNKS
#define CHUNKS 10
#endif
#define SLOTS 4
#ifndef WINDOW
#define WINDOW SLOTS
#endif

byte written[SLOTS]; /* the chunk that the sender has put there, counted from 1 */
byte there[SLOTS];   /* and what the receiver sees */
byte sent, taken;

#define ARRIVES(s) atomic { written[s] != there[s] -> there[s] = written[s] }

active proctype arrival() {
end:
  do
  :: ARRIVES(0)
  :: ARRIVES(1)
  :: ARRIVES(2)
  :: ARRIVES(3)
  od
}

active proctype sender() {
  byte n = 0;
  do
  :: n == CHUNKS -> break
  :: n < CHUNKS ->
    n < WINDOW || taken >= n + 1 - WINDOW;
    written[n % SLOTS] = n + 1;
#ifndef RELAXED
    there[n % SLOTS] == n + 1;
#endif
    sent = n + 1;
    n++
  od
}

active proctype receiver() {
  byte n = 0;
  do
  :: n == CHUNKS -> break
  :: n < CHUNKS ->
    sent >= n + 1;
    assert(there[n % SLOTS] == n + 1);
    taken = n + 1;
    n++
  od
}
