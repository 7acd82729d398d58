/**
 * What a backend implements, and what the library gives it. All parts are found with {@link
 * java.util.ServiceLoader}.
 *
 * <p>A {@link Launcher} joins the job that started this process, and gives its {@link Transport}:
 * who takes part, and persistent {@link Message}s between ranks. A {@link JobProcess} ends ranks
 * that are processes. From a transport alone the library makes communicators, collectives,
 * time-outs and the comparison of calls.
 *
 * <p>A {@link DeviceProvider} opens a {@link BackendDevice}, whose buffers extend {@link
 * AbstractDeviceBuffer}.
 *
 * <p>A {@link ReducerProvider} creates a {@link Reducer} from a {@link SyncContext}. A reducer gets
 * each call as a {@link CollectiveCall} and hands it to {@link RankGroup#run}, which compares the
 * ranks' calls, runs the body that moves the data, and turns what fails into the same exception on
 * all ranks. {@link ReducerParts} has the library's own reducers, to build on: {@link
 * MessageReducerProvider} provides the one that needs nothing but messages, and a {@link
 * ForwardingReducer} leaves to another one what it does not do itself. Reducers that only enqueue
 * record what they enqueue in {@link DeviceCalls}.
 *
 * <p>{@link Settings} and {@link Timeouts} are what the user asked for, {@link Availability} says
 * why something cannot be used, {@link Resources} closes what was opened.
 *
 * <p>{@link CallInterceptor} sees a program's calls before they run, for fault injection. {@link
 * SyncProvider} is how the API finds the engine.
 *
 * <p>The package {@code org.gradientsync.test.example} in {@code gradient-sync-test} is a whole
 * backend, and the contracts beside it test others.
 */
package org.gradientsync.spi;
