package org.gradientsync.test.faults;

/** One thing that is to go wrong once. */
final class Fault {
  /** What is counted. */
  enum Kind {
    CALL("atCall"),
    COPY("atCopy");

    private final String text;

    Kind(String text) {
      this.text = text;
    }
  }

  /** What is to be done with the call itself. */
  enum Verdict {
    MAKE,
    DROP,
    MISMATCH
  }

  /** What goes wrong before the call, or in its place. */
  interface Strike {
    Verdict on(RankCalls calls);
  }

  private final int rank;
  private final Kind kind;
  private final int number;
  private final String what;
  private final Strike strike;
  private volatile boolean reached;

  Fault(int rank, Kind kind, int number, String what, Strike strike) {
    this.rank = rank;
    this.kind = kind;
    this.number = number;
    this.what = what;
    this.strike = strike;
  }

  int rank() {
    return rank;
  }

  boolean isAt(int otherRank, Kind otherKind, int otherNumber) {
    return rank == otherRank && kind == otherKind && number == otherNumber;
  }

  Verdict strike(RankCalls calls) {
    reached = true;
    return strike.on(calls);
  }

  boolean isReached() {
    return reached;
  }

  /** As the test has written it. */
  @Override
  public String toString() {
    return "onRank(" + rank + ")." + kind.text + "(" + number + ")." + what;
  }
}
