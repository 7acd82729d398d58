/** Gradients packed into buckets, and the thread that averages them during the backward pass. */
package org.gradientsync.internal.buckets;
