/** The embedded backend: ranks are threads of one JVM. */
package org.gradientsync.local;
