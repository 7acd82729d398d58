package org.gradientsync.mpi.binding;

import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.List;
import java.util.stream.IntStream;
import org.gradientsync.RankLostException;
import org.gradientsync.core.backend.HostBuffers;
import org.gradientsync.spi.Transport;

/**
 * The end of a job whose ranks live when others die: each says that it has come to its end, and
 * waits for the others. Those that have gone on after a loss do not call MPI_Finalize, which may
 * hang then. If they did not wait, messages of a rank that ends first would be lost, and mpirun,
 * which counts a rank twice that ends with a code other than 0, would kill the last ones.
 */
final class LastWords {
  static final byte END = 1;
  static final byte GO_WITHOUT_YOU = 2;

  private static final int TAG = Transport.MAX_TAG + 1; // no other message has it

  private final MpiJob job;
  private final BitSet leftBehind = new BitSet();
  private final BitSet ended = new BitSet();
  private boolean goesOn;
  private boolean isLeft; // the others go on without this rank
  private ByteBuffer[] words; // from each rank; null until this rank has come to its end
  private MpiMessage[] receives;

  LastWords(MpiJob job) {
    this.job = job;
  }

  /** Does not wait for ranks that have died, nor for these, from now on, and tells these. */
  synchronized void goOnWithout(List<Integer> ranks) {
    goesOn = true;
    for (int peer : ranks) {
      if (!leftBehind.get(peer)) {
        leftBehind.set(peer);
        tell(peer, GO_WITHOUT_YOU);
      }
    }
  }

  /** Whether this rank ends without ending the job: some go on without others. */
  synchronized boolean isAlone() {
    return goesOn || isLeft;
  }

  synchronized boolean haveAllCome() {
    if (words == null) {
      words = new ByteBuffer[job.size()];
      receives = new MpiMessage[job.size()];
      for (int peer = 0; peer < words.length; peer++) {
        if (peer != job.rank() && !leftBehind.get(peer)) {
          words[peer] = HostBuffers.allocate(1);
          receives[peer] = job.receiver(words[peer], peer, TAG);
          receives[peer].start();
          tell(peer, END);
        }
      }
    }
    boolean all = true;
    for (int peer = 0; peer < words.length; peer++) {
      all &= words[peer] == null || hasCome(peer);
    }
    return all || isLeft && !goesOn;
  }

  /** The ranks that live and have not come, after {@link #haveAllCome}. */
  synchronized List<Integer> awaited() {
    return IntStream.range(0, words.length)
        .filter(peer -> words[peer] != null && !ended.get(peer) && job.isAlive(peer))
        .boxed()
        .toList();
  }

  private void tell(int peer, byte word) {
    try (MpiMessage message = job.sender(HostBuffers.allocate(1).put(0, word), peer, TAG)) {
      message.start();
    }
  }

  private boolean hasCome(int peer) {
    try {
      if (!ended.get(peer) && receives[peer].test()) {
        isLeft |= words[peer].get(0) == GO_WITHOUT_YOU; // and sends no other word
        ended.set(peer);
      }
    } catch (RankLostException e) {
      // it is not alive
    }
    return job.isAlive(peer) ? ended.get(peer) : goesOn;
  }
}
