package org.gradientsync.examples;

/** Repeats the tests with graphs. */
class GpuMlpGraphsTest extends GpuMlpTest {
  @Override
  GpuMlp engine(int[] widths, int rows, boolean tf32) {
    GpuMlp engine = super.engine(widths, rows, tf32);
    engine.useGraphs();
    return engine;
  }
}
