/** Data-parallel training with Deep Java Library: one listener for DJL's {@code EasyTrain}. */
package org.gradientsync.djl;
