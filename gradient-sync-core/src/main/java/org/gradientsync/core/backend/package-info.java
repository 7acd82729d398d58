/**
 * The small part of the engine that backends may use, beside {@link org.gradientsync.spi}.
 *
 * <p>For reducers: {@link org.gradientsync.core.backend.PlanCache} keeps a plan for each call,
 * {@link org.gradientsync.core.backend.MessageRounds} orders grouped messages, {@link
 * org.gradientsync.core.backend.Agreement} makes a setup succeed on all ranks or on none, {@link
 * org.gradientsync.core.backend.MessageReducerProvider} provides what every launcher has, {@link
 * org.gradientsync.core.backend.HostProducts} multiplies matrices in host memory, and {@link
 * org.gradientsync.core.backend.Counter} is a number in shared memory on which other processes
 * wait.
 *
 * <p>For checks before the first call: {@link org.gradientsync.core.backend.Answers} gives every
 * rank the texts of all, {@link org.gradientsync.core.backend.LayoutCheck} names the first
 * parameter that differs, and {@link org.gradientsync.core.backend.AgreedSettings} the setting.
 *
 * <p>For launchers: {@link org.gradientsync.core.backend.LauncherVariables} reads what started this
 * process, {@link org.gradientsync.core.backend.RankPlace}, {@link
 * org.gradientsync.core.backend.NodeIdentity} and {@link org.gradientsync.core.backend.Processes}
 * find out who shares a node and who has died, {@link org.gradientsync.core.backend.WaitClock}
 * measures a wait without the time in which this process was stopped, {@link
 * org.gradientsync.core.backend.Signals} handles signals, and {@link
 * org.gradientsync.core.backend.WaitingFile} tells a launcher that all ranks give up.
 *
 * <p>For native libraries: {@link org.gradientsync.core.backend.NativeClasses} and {@link
 * org.gradientsync.core.backend.LoaderMessage} explain why one does not load, {@link
 * org.gradientsync.core.backend.TemporaryFiles}, {@link org.gradientsync.core.backend.OwnFiles} and
 * {@link org.gradientsync.core.backend.ProcessFileNames} handle files that no other user can plant.
 *
 * <p>For texts and memory: {@link org.gradientsync.core.backend.Amounts}, {@link
 * org.gradientsync.core.backend.ShortText}, {@link org.gradientsync.core.backend.HostBuffers};
 * {@link org.gradientsync.core.backend.ShownEnvironment} has the variables that a report may show.
 *
 * <p>The package depends on the API and the SPI alone. It is for this project's own backends: other
 * than the SPI, it may change with each release.
 */
package org.gradientsync.core.backend;
