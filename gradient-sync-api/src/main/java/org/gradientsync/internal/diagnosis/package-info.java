/** Why a job does not go on: the deadlock detector, and the reports after a time-out. */
package org.gradientsync.internal.diagnosis;
