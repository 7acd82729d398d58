package org.gradientsync.cuda;

import java.util.stream.Stream;
import org.junit.jupiter.params.provider.Arguments;

/** Makes each driver call of the reducer {@code peer} fail, on simulated GPUs. */
class EveryPeerCallFailsTest extends EveryCudaCallFailsTest {
  static Stream<Arguments> cases() {
    return cases(name -> name.startsWith("peer"));
  }
}
