/** Selects the launcher, the device and the reducer that all ranks can use. */
package org.gradientsync.core.selection;
