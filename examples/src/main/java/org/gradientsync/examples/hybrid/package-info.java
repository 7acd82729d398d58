/**
 * Trains one model with tensor, pipeline and data parallelism at the same time, for the program
 * {@code train-hybrid}.
 *
 * <p>{@code Grid} gives each rank its place, and {@code Groups} splits the sync accordingly. A
 * {@code Stage} has a part of the model's {@code LayerPair}s; each rank of a tensor group holds a
 * part of each layer ({@code ColumnParallelLayer}, {@code RowParallelLayer}). {@code Schedule}
 * lists what a stage does in a step, {@code PipelineLinks} exchanges activations with the
 * neighboring stages, and {@code GradientAverages} averages gradients in a data group. {@code
 * HybridTraining} combines them. {@code SerialTraining} is the same training on one rank, to
 * compare with.
 *
 * <p>Layers are computed on the CPU in float64, on all devices. Matrices are row-major arrays.
 */
package org.gradientsync.examples.hybrid;
