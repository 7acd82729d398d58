/**
 * The interfaces that backends implement: launchers, devices and reducers, found with {@link
 * java.util.ServiceLoader}.
 */
package org.gradientsync.spi;
