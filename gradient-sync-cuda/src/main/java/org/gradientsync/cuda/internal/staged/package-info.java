/** The reducer {@code host-staged}, which sends gradients through page-locked host memory. */
package org.gradientsync.cuda.internal.staged;
