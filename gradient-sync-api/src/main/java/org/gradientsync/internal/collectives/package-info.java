/** The collectives on host memory and over messages: one algorithm a class, for every backend. */
package org.gradientsync.internal.collectives;
