/**
 * A whole backend in a few classes, for authors of others: a launcher, its transport, and a
 * reducer, between threads. It is written from {@link org.gradientsync.spi} alone.
 *
 * <p>{@link QueueLauncher} joins the job of a thread. Its transport is all that the library needs
 * for everything but speed: communicators, collectives, time-outs and the comparison of calls are
 * made of its messages. The reducer then does a sync's collectives without them, from what the
 * ranks put on a board. {@link QueueRunner} runs {@linkplain org.gradientsync.test.contract
 * contracts} with it: copy a contract's subclass, give it your runner, and you know what your
 * backend must still learn.
 *
 * <p>A backend names its classes in {@code META-INF/services}: the launcher as {@code
 * org.gradientsync.spi.Launcher}, the reducer's provider as {@code
 * org.gradientsync.spi.ReducerProvider}. This one does so only in this module's own tests.
 */
package org.gradientsync.test.example;
