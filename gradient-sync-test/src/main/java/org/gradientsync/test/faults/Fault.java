package org.gradientsync.test.faults;

/** A fault that a test has planned, which happens once. */
final class Fault {
  /** What the fault counts. */
  enum Kind {
    CALL("atCall"),
    COPY("atCopy");

    private final String text;

    Kind(String text) {
      this.text = text;
    }
  }

  /** What happens to the call itself. */
  enum Verdict {
    MAKE,
    DROP,
    MISMATCH
  }

  /** What goes wrong before the call, or instead of it. */
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

  /** As written in the test. */
  @Override
  public String toString() {
    return "onRank(" + rank + ")." + kind.text + "(" + number + ")." + what;
  }
}
