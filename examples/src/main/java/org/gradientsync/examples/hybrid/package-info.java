/**
 * Trains one model with tensor, pipeline and data parallelism at the same time, for the program
 * {@code train-hybrid}.
 *
 * <p>{@link Grid} gives each rank its place, and {@link Groups} splits the sync accordingly. A
 * {@link Stage} has a part of the model's {@link LayerPair}s; each rank of a tensor group holds a
 * part of each layer ({@link ColumnParallelLayer}, {@link RowParallelLayer}). {@link Schedule}
 * lists what a stage does in a step, {@link PipelineLinks} exchanges activations with the
 * neighboring stages, and {@link GradientAverages} averages gradients in a data group. {@link
 * HybridTraining} combines them. {@link SerialTraining} is the same training on one rank, to
 * compare with.
 *
 * <p>Layers are computed on the CPU in float64, on all devices. Matrices are row-major arrays.
 */
package org.gradientsync.examples.hybrid;
