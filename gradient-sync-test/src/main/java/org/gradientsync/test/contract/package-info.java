/**
 * Contract tests for backends: extend a contract and give it a {@link
 * org.gradientsync.test.contract.RankRunner}.
 */
package org.gradientsync.test.contract;
