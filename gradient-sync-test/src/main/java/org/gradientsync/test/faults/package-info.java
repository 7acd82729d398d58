/** Fault injection for tests of training code: {@link org.gradientsync.test.faults.Faults}. */
package org.gradientsync.test.faults;
