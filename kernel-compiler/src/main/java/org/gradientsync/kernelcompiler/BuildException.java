package org.gradientsync.kernelcompiler;

/** The build cannot compile the kernels. The message says why and what to do. */
public final class BuildException extends Exception {
  private static final long serialVersionUID = 1;

  BuildException(String message) {
    super(message);
  }
}
