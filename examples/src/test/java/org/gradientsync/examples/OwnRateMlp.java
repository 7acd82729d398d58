package org.gradientsync.examples;

import java.util.stream.Stream;

/** A training whose rank 1 has another option than the others. */
final class OwnRateMlp {
  private OwnRateMlp() {}

  public static void main(String[] args) {
    String rate = "1".equals(System.getenv("RANK")) ? "--rate=0.1" : "--rate=0.2";
    TrainMlp.main(Stream.concat(Stream.of(args), Stream.of(rate)).toArray(String[]::new));
  }
}
