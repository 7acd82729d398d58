/** The embedded backend, whose ranks are threads of one JVM. */
package org.gradientsync.local;
