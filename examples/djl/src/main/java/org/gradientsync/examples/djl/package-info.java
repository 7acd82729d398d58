/**
 * Training with Deep Java Library on several ranks.
 *
 * <p>{@link DjlTraining} trains a convolutional network with DJL's {@code EasyTrain} and PyTorch,
 * and the listener of {@code org.gradientsync.djl} averages its gradients.
 *
 * <p>{@link Digits} draws the rows: images of digits, the same for the same seed, so nothing is
 * downloaded.
 */
package org.gradientsync.examples.djl;
