/**
 * What a backend implements, found by {@link java.util.ServiceLoader}: ways in which ranks come to
 * life, devices, reducers.
 */
package org.gradientsync.spi;
