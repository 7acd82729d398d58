/**
 * What a backend implements, and what the library gives it. All parts are found with {@link
 * java.util.ServiceLoader}.
 *
 * <p>A {@link org.gradientsync.spi.Launcher} joins the job that started this process, and gives its
 * {@link org.gradientsync.spi.Transport}: who takes part, and persistent {@link
 * org.gradientsync.spi.Message}s between ranks. A {@link org.gradientsync.spi.JobProcess} ends
 * ranks that are processes. From a transport alone the library makes communicators, collectives,
 * time-outs and the comparison of calls.
 *
 * <p>A {@link org.gradientsync.spi.DeviceProvider} opens a {@link
 * org.gradientsync.spi.BackendDevice}, whose buffers extend {@link
 * org.gradientsync.spi.AbstractDeviceBuffer}.
 *
 * <p>A {@link org.gradientsync.spi.ReducerProvider} creates a {@link org.gradientsync.spi.Reducer}
 * from a {@link org.gradientsync.spi.SyncContext}. A reducer gets each call as a {@link
 * org.gradientsync.spi.CollectiveCall} and hands it to {@link org.gradientsync.spi.RankGroup#run},
 * which compares the ranks' calls, runs the body that moves the data, and turns what fails into the
 * same exception on all ranks. {@link org.gradientsync.spi.ReducerParts} has the library's own
 * reducers, to build on. Reducers that only enqueue record what they enqueue in {@link
 * org.gradientsync.spi.DeviceCalls}.
 *
 * <p>{@link org.gradientsync.spi.Settings} and {@link org.gradientsync.spi.Timeouts} are what the
 * user asked for, {@link org.gradientsync.spi.Availability} says why something cannot be used,
 * {@link org.gradientsync.spi.Resources} closes what was opened.
 *
 * <p>{@link org.gradientsync.spi.CallInterceptor} sees a program's calls before they run, for fault
 * injection. {@link org.gradientsync.spi.SyncProvider} is how the API finds the engine.
 *
 * <p>The package {@code org.gradientsync.test.example} in {@code gradient-sync-test} is a whole
 * backend, and the contracts beside it test others.
 */
package org.gradientsync.spi;
