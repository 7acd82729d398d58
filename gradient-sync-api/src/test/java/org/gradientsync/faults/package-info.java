/** Faults on purpose, for tests of training code: {@link org.gradientsync.faults.Faults}. */
package org.gradientsync.faults;
