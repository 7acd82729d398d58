/**
 * The small part of the engine that backends may use, beside {@link org.gradientsync.spi}.
 *
 * <p>For reducers: {@link PlanCache} keeps a plan for each call, {@link MessageRounds} orders
 * grouped messages, {@link Agreement} makes a setup succeed on all ranks or on none, {@link
 * HostProducts} multiplies matrices in host memory, and {@link Counter} is a number in shared
 * memory on which other processes wait.
 *
 * <p>For checks before the first call: {@link Answers} gives every rank the texts of all, {@link
 * LayoutCheck} names the first parameter that differs, and {@link AgreedSettings} the setting.
 *
 * <p>For launchers: {@link LauncherVariables} reads what started this process, {@link RankPlace},
 * {@link NodeIdentity} and {@link Processes} find out who shares a node and who has died, {@link
 * WaitClock} measures a wait without the time in which this process was stopped, {@link Signals}
 * handles signals, and {@link WaitingFile} tells a launcher that all ranks give up.
 *
 * <p>For native libraries: {@link NativeClasses} and {@link LoaderMessage} explain why one does not
 * load, {@link TemporaryFiles}, {@link OwnFiles} and {@link ProcessFileNames} handle files that no
 * other user can plant.
 *
 * <p>For texts and memory: {@link Amounts}, {@link ShortText}, {@link HostBuffers}; {@link
 * ShownEnvironment} has the variables that a report may show.
 *
 * <p>The package depends on the API and the SPI alone. It is for this project's own backends: other
 * than the SPI, it may change with each release.
 */
package org.gradientsync.core.backend;
