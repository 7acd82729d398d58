/**
 * Training that loses ranks and goes on.
 *
 * <p>{@link ElasticTraining} runs the steps of an {@link ElasticLoop}, which a program writes. When
 * a rank is lost, it makes a sync of the others with {@link
 * org.gradientsync.GradientSync#survivors}, brings those that are behind up to the newest state,
 * and repeats the step that was not finished. Ranks may also leave after a step, and new ones join.
 */
package org.gradientsync.elastic;
