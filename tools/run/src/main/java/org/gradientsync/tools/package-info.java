/**
 * The command {@code gradient-sync}. {@code .run} starts jobs, and {@code .program} is what
 * programs have in common. More programs are found with {@link java.util.ServiceLoader}.
 */
package org.gradientsync.tools;
