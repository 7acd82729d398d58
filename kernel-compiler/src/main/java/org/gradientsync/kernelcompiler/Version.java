package org.gradientsync.kernelcompiler;

/** A version of NVRTC. */
record Version(int major, int minor) implements Comparable<Version> {
  /** Older versions compile kernels that are up to 16% slower. */
  static final Version OLDEST = new Version(12, 4);

  boolean isNewEnough() {
    return compareTo(OLDEST) >= 0;
  }

  @Override
  public int compareTo(Version other) {
    return major != other.major
        ? Integer.compare(major, other.major)
        : Integer.compare(minor, other.minor);
  }

  @Override
  public String toString() {
    return major + "." + minor;
  }
}
