package org.gradientsync.cuda.internal.peer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Set;
import org.gradientsync.ReduceOp;
import org.junit.jupiter.api.Test;

/** Tests the part of a flag that identifies the kind of call. */
class PeerTagTest {
  private static final int[] REGISTRATIONS = {1, 2, 1000, 1 << 20, PeerTag.MAX_REGISTRATIONS};

  @Test
  void everyCallHasItsOwnThatFits() {
    Set<Integer> tags = new HashSet<>(Set.of(0, PeerTag.GAVE_UP));
    for (int registration : REGISTRATIONS) {
      for (ReduceOp op : ReduceOp.values()) {
        int tag = PeerTag.of(registration, op);
        assertTrue(tags.add(tag), registration + " " + op);
        assertEquals(tag, tag & PeerTag.MASK);
        assertEquals(registration, PeerTag.registration(tag));
        assertEquals(op.name(), PeerTag.operation(tag));
      }
      int collective = PeerTag.ofCollective(registration);
      assertTrue(tags.add(collective), registration + " collective");
      assertEquals(collective, collective & PeerTag.MASK);
      assertEquals(registration, PeerTag.registration(collective));
      assertTrue(PeerTag.isCollective(collective) && !PeerTag.isMessage(collective));
      int tag = PeerTag.ofBroadcast(registration);
      assertTrue(!PeerTag.isCollective(tag) && !PeerTag.isMessage(tag));
      assertTrue(tags.add(tag), registration + " broadcast");
      assertEquals(tag, tag & PeerTag.MASK);
      assertEquals(registration, PeerTag.registration(tag));
      assertEquals("broadcast", PeerTag.operation(tag));
    }
  }

  @Test
  void messagesKnowTheOtherRank() {
    for (int peer = 0; peer < PeerLayout.MAX_RANKS; peer++) {
      for (boolean sends : new boolean[] {false, true}) {
        int tag = PeerTag.ofMessage(peer, sends);
        assertEquals(peer, PeerTag.peer(tag));
        assertEquals(sends, PeerTag.sends(tag));
        assertTrue(PeerTag.isMessage(tag) && !PeerTag.isCollective(tag));
        assertEquals(tag, tag & PeerTag.MASK);
      }
    }
  }

  @Test
  void moreRegistrationsWouldMeetTheSpecialOne() {
    int next = PeerTag.MAX_REGISTRATIONS + 1;
    assertEquals(PeerTag.GAVE_UP, PeerTag.ofBroadcast(next));
    assertTrue(PeerTag.ofBroadcast(PeerTag.MAX_REGISTRATIONS) < PeerTag.GAVE_UP);
  }
}
