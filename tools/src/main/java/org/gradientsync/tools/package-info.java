/** The command {@code gradient-sync} and its subcommands. {@code .run} starts jobs. */
package org.gradientsync.tools;
