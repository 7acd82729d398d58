/**
 * Programs that use the library, from one array to a trainer.
 *
 * <p>{@code FirstAverage} averages one array, and {@code LinearRegression} is the smallest
 * training. {@code GradientAverage} checks and times an average. {@code MonteCarloPi}, {@code
 * MatrixMultiply} and {@code HaloExchange} use other calls, {@code PartitionedKernel} and {@code
 * DeviceSelection} several GPUs.
 *
 * <p>{@code TrainMlp} trains a perceptron, in plain Java ({@code HostMlp}) or on a GPU ({@code
 * GpuMlp}), both an {@code MlpEngine}. Its options are a class for each subject: {@code MlpData},
 * {@code MlpModel}, {@code MlpOptimizer}, {@code MlpHook}, {@code MlpCheckpoints}, {@code
 * MlpElastic}, {@code MlpFiles}, {@code LocalSteps}. {@code MlpRun} is one rank's training, by an
 * {@code MlpTrainer}; with ranks that may be lost it is an {@code ElasticMlp}. {@code Timeline} and
 * {@code LossPlot} draw what happened.
 *
 * <p>{@code TrainHybrid} divides layers, stages and rows over the ranks; its parts are in {@link
 * org.gradientsync.examples.hybrid}.
 */
package org.gradientsync.examples;
