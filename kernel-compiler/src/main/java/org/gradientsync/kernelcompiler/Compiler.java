package org.gradientsync.kernelcompiler;

/** Compiles CUDA C++. Safe for use by several threads. */
interface Compiler {
  Version version();

  byte[] compile(Source source, Target target) throws BuildException;
}
