/** The embedded backend: messages between ranks that are threads of one JVM. */
package org.gradientsync.core.local;
