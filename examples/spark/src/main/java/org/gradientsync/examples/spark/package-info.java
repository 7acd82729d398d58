/**
 * Training in a barrier stage of Apache Spark.
 *
 * <p>{@code SparkTraining} trains in the tasks of an {@code RDDBarrier}, which Spark starts
 * together. They agree on the job's address through their {@code BarrierTaskContext}, and give it
 * with their numbers to the builder of {@link org.gradientsync.GradientSync}. So they join over
 * TCP, without variables of the environment, several in one JVM or in many.
 *
 * <p>Only builds with {@code -Pspark} include it. Its test runs on Spark's local mode.
 */
package org.gradientsync.examples.spark;
