/**
 * Training in a barrier stage of Apache Spark.
 *
 * <p>{@code SparkTraining} trains in the tasks of an {@code RDDBarrier}, which Spark starts
 * together. They agree on the job's address through their {@code BarrierTaskContext}, and give it
 * with their numbers to the builder of {@link org.gradientsync.GradientSync}. So they join over
 * TCP, without variables of the environment, several in one JVM or in many.
 *
 * <p>This is a build of its own, which the others do not wait for. Its test runs on Spark's local
 * mode.
 */
package org.gradientsync.examples.spark;
