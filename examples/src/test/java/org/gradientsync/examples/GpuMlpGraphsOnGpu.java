package org.gradientsync.examples;

/** The same with graphs. */
class GpuMlpGraphsOnGpu extends GpuMlpOnGpu {
  @Override
  GpuMlp engine(int[] widths, int rows, boolean tf32) {
    GpuMlp engine = super.engine(widths, rows, tf32);
    engine.useGraphs();
    return engine;
  }
}
