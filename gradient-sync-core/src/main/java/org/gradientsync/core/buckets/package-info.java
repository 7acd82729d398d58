/** Buckets of gradients, and the thread that averages them during the backward pass. */
package org.gradientsync.core.buckets;
