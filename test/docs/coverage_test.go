package docs

import (
	"path/filepath"
	"strings"
	"testing"
)

// A user page does not name tests. These tables map each row, by its first cell, to the tests that verify it.

// doorTests are the tests of each row of docs/doors.md.
var doorTests = map[string][]string{
	"Templates of any kind": {
		"TestExcluded",
		"TestEveryNamespaceButTheSystemsIsSentOnce",
		"TestOverridesKeepIdentityOfTemplate",
	},
	"Namespace": {
		"TestEveryNamespaceButTheSystemsIsSentOnce",
		"TestNamespaceWithPreservedObjectsIsKept",
	},
	"PropagationPolicy": {
		"TestANamespacedPolicySelectsInItsNamespaceOnly",
		"TestNamespacedPolicySelectsClusterScopedTemplates",
		"TestSendingSecretsNeedsRightToReadThem",
		"TestHubActsOnlyWithinTheRightsOfADeveloper",
		"TestSelectingQuotasNeedsRightToChangeThem",
	},
	"ClusterPropagationPolicy": {
		"TestSendingSecretsNeedsRightToReadThem",
		"TestSelectingQuotasNeedsRightToChangeThem",
	},
	"`conflictResolution: Overwrite` in a policy, `work.karmada.io/conflict-resolution: overwrite` on a template": {
		"TestForbiddenOverwriteIsRejected",
		"TestExistingOverwriteAbortsOnceForbidden",
		"TestForbiddenOverwriteKeepsTheMembersObject",
	},
	"OverridePolicy, every overrider": {
		"TestOverridePolicyCannotGrantAdmin",
		"TestOverrideNeverChangesIdentity",
		"TestReaches",
		"TestRandomOverridesKeepTheObject",
		"TestEveryKindOfOverriderIsTested",
		"TestOverrideCannotEscalateRights",
		"FuzzOverridesKeepTheObject",
	},
	"ClusterOverridePolicy, every overrider": {
		"TestOverrideNeverChangesIdentity",
		"TestOverrideCannotEscalateRights",
		"TestClusterScopedOverrideNeedsClusterOverrideRights",
	},
	"Claim of a policy: labels and annotations of a template": {
		"TestAClaimStays",
		"TestHalfAClaimIsNone",
		"TestHubActsOnlyWithinTheRightsOfADeveloper",
	},
	"Policy that is being deleted": {
		"TestObjectsInDeletionAreStillValidated",
	},
	"Dependencies of a template (`propagateDeps`)": {
		"TestDependenciesAreInTheNamespaceOfTheTemplate",
		"TestDependencyInAnotherNamespaceDoesNotFollow",
	},
	"ResourceBinding, ClusterResourceBinding": {
		"TestWritingBindingNeedsRightToReadTemplate",
		"TestEachChangeOfABindingAsksForTheSameRight",
		"TestForgedBindingLabelsCannotOverwrite",
		"TestBindingWithForeignReferenceSendsNothing",
		"TestABindingIsAboutATemplateOfItsOwnNamespaceAlone",
	},
	"Work": {
		"TestAWorkOfABindingAppliesNothingButItsTemplate",
		"TestWorksWrittenByHandAreMadeLikeOurs",
	},
	"ManifestWork of Open Cluster Management": {
		"TestManifestWorkGetsFinalizerAndIsValidated",
		"TestEachObjectHasAWork",
		"TestExecutorIsRejected",
		"TestKlusterletsWriteTheMetadataOfTheirManifestWorks",
		"TestAStatusThatCannotBeReadIsRefused",
		"TestExpressionsMakeNoLongTexts",
		"FuzzManifestWorks",
	},
	"ManifestWorkReplicaSet": {
		"TestReplicaSetsNeedRightsInAllClusters",
		"TestLabelsOfReplicaSetsNeedRights",
		"TestReplicaSetDecides",
		"TestReplicaSetFollowsItsPlacements",
	},
	"ClusterManagementAddOn, AddOnTemplate, AddOnDeploymentConfig": {
		"TestAddonsNeedRightsInAllClusters",
		"TestTemplatesGiveOnlyRightsThatTheirAuthorsMayBind",
	},
	"ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, ManagedClusterAddOn": {
		"TestAcceptanceNeedsItsRight",
		"TestJoiningASetNeedsRightsOnBothSets",
		"TestBindingASetNeedsItsRight",
		"TestOnlyTheHubWritesTheOriginOfAnObject",
		"TestNoClusterIsCreatedBesideAManagedCluster",
	},
	"PlacementDecision of `multicluster.x-k8s.io`": {
		"TestDecisionsOfABinding",
		"TestDecisionsAreInTheNamespaceOfTheWorkload",
	},
	"ServiceExport in a cluster, with `mcs: auto`": {
		"TestServicesThatClustersExportAreImportedEverywhere",
		"TestObjectsWithTheNamesOfImportsStay",
		"TestNamespacesOfTheSystemAreNotShared",
		"TestExportsSetNoLabelsOfHubs",
	},
	"ClusterProfile": {
		"TestProgramsReachTheClustersOfTheInventory",
		"TestCredentialIsOnlyForTheProxiesOfTheHub",
	},
	"Placement, PlacementDecision, AddOnPlacementScore; `argosy.io/placement-decision` on a policy": {
		"TestPlacementChoosesClusters",
		"TestPlacementThatIsNotValidKeepsItsClusters",
		"TestPublishingAPlacementNeedsItsRight",
		"TestClusterPoliciesPublishInANamespace",
		"TestDecisionsOfOthersStay",
	},
	"Release, ReleaseStrategy, ReleaseApproval, ReleaseRevision": {
		"TestARevisionChangesOnlyThePodsOfItsWorkload",
		"TestAGateNeedsDifferentApproversForThisRevision",
		"TestReleasesThatCannotRunAreRefused",
	},
	"ReleaseGuard": {
		"TestAbortRollbackAndPausePassAClosedWindow",
		"TestEnforcingGuardRefusesDirectChanges",
		"TestGuardsHoldInRandomHistories",
	},
	"ReleaseCheck": {
		"TestAuthorOfACheckNeedsItsRights",
		"TestOnlyPermittedAddressesAreCalled",
		"TestTheHubsOwnServersAreNotCalled",
		"TestARedirectIsNotFollowed",
		"TestACheckAsksTheServicesOfMembers",
	},
	"EnclosedManifest (`argosy addons`, `argosy access grant`)": {
		"TestMembersGetTheEnclosedManifest",
		"TestOverridesKeepIdentityOfTemplate",
		"TestAnOperatorIsInstalledInMembersAndTheHubActsOnNoneOfIt",
		"TestOnlyAdministratorsGrantRolesInClusters",
	},
	"ResourceInterpreterCustomization: Lua and JSONPath": {
		"TestOverridesCannotReachAnotherObject",
		"TestScriptCannotChangeIdentity",
		"FuzzScriptsKeepTheObject",
		"FuzzPathsKeepTheObject",
		"FuzzPaths",
	},
	"ResourceInterpreterWebhookConfiguration": {
		"TestOverridesCannotReachAnotherObject",
		"TestWebhookConfiguration",
		"TestRedirectOfMemberNeverReachesHub",
	},
	"Conversion to a version that a member serves": {
		"TestOverridesCannotReachAnotherObject",
	},
	"Spellings that the hub rewrites when it stores an object": {
		"FuzzNormaliseKeepsTheObject",
	},
	"Subsets of a UnitedDeployment with a cluster affinity": {
		"TestSubsetRunsOnlyInItsClusters",
		"TestUnsupportedSubsetsAreRefused",
	},
	"Image pulls before a rollout (`argosy.io/pre-pull`)": {
		"TestAnnotationsReachNothingButTheirOwnTemplate",
		"TestPullUsesNodesAndSecretsOfPods",
	},
	"FederatedHPA, CronFederatedHPA": {
		"TestGeneratedMemberObjectsStayInTheirNamespace",
		"TestFederatedHPA",
		"TestCronFederatedHPA",
		"TestTargetIsAlwaysInTheSameNamespace",
	},
	"ServiceExport, ServiceImport, MultiClusterService": {
		"TestGeneratedMemberObjectsStayInTheirNamespace",
		"TestClusterWithRefusedServiceGetsNoEndpoints",
		"TestServiceImportWithLongNameIsRejected",
	},
	"MultiClusterIngress": {
		"TestMultiClusterIngressesAreStoredAsAnIngress",
		"TestTrafficFollowsRemedies",
	},
	"Remedy": {
		"TestRemediesNeverCutAllTraffic",
		"TestRemediesThatWouldCutAllTrafficAreReported",
		"TestAgentsDoNotWriteActionsOfRemedies",
		"TestRemediesWithMistakesAreRefusedOrWarnedOf",
	},
	"WorkloadRebalancer, ReplicaSchedulingPolicy": {
		"TestRebalancersNeedSchedulableWorkloads",
		"TestTheBindingOfAnotherGroupsTemplateIsNotTaken",
	},
	"ResourceRegistry": {
		"TestReadersSeeOnlyWhatHubAndMemberPermit",
		"TestWatchEndsWithTheRightWithin30Seconds",
	},
	"FederatedResourceQuota": {
		"TestNoRoleWritesQuotas",
		"TestStaticAssignmentsAreSentToTheirClusters",
		"TestOtherResourceQuotaOfTheNameStays",
		"TestQuotaBelowTheUsageRefusesGrowthOnly",
	},
	"ClusterTaintPolicy": {
		"TestPoliciesAddAndRemoveTaints",
		"TestClusterTaintPolicy",
	},
	"`spec.failover` of a policy, its annotations `argosy.io/failback-after` and `argosy.io/failover-persistent-volumes`, and `spec.gracefulEvictionTasks` of a binding": {
		"TestNothingIsLostInRandomFleets",
		"TestPreservedStateSetsNoMarkOfTheHub",
	},
	"Approval of a rollout step": {
		"TestApprovalIsForOneStepAndRevision",
	},
	"Cluster: address, credentials, proxy": {
		"TestChangingMemberAddressNeedsRightToReadCredentials",
	},
	"`clusters/NAME/proxy`": {
		"TestRedirectOfMemberNeverReachesHub",
		"TestAMembersRedirectOfAnUpgradeLeadsNowhereEither",
		"TestTheHubActsInAMemberAsThoseAloneWhomItsRolesLetIn",
		"FuzzRequest",
	},
	"pods and nodes of `metrics.k8s.io`, and `custom.metrics.k8s.io`": {
		"TestUsersReadOnlyWhatTheyMayInEachMember",
		"TestRequestsForOtherThanMetricsAreRefused",
	},
	"Cluster: `argosy.io/impersonate-system-names`": {
		"TestLetInSystemNamesOnlyWithImpersonationRights",
		"TestHubServiceAccountIsNotMemberServiceAccount",
		"TestNamesOfKubernetesOwnAreLetInOneByOne",
	},
}

// threatTests are the tests of each row of the threats in docs/security.md.
var threatTests = map[string][]string{
	"A user starts a release as a service account or as another user, and then approves it": {
		"TestAnApprovalIsThatOfAnotherPerson",
		"TestAnApprovalNeedsAnotherPerson",
		"TestFourEyesAreTwoPeople",
	},
	"A developer creates objects whose Works would have the names of another tenant's Works": {
		"TestNamesOfOneTenantBlockNoOther",
	},
	"A web page, or a thief of a link or of a cookie, acts as a user of the web console": {
		"TestForeignPagesAreRefused",
		"TestCookieIsOutOfReachOfScripts",
		"TestLinkLogsInOnceInTheWholeFleet",
		"TestLinkExpiresAndCannotBeForged",
		"TestSessionIsItsUserWhateverElseARequestBrings",
		"TestForeignLoginOfOpenIDConnectIsRefused",
		"TestConsoleGivesNoMoreRightsThanKubectl",
		"TestRowsAreOnlyWhatTheUserMayList",
		"TestHostileNamesAreTextInABrowser",
	},
	"A kubeconfig that a user pastes into the web console makes the hub run a program or read a file": {
		"TestHostileKubeconfigIsRefused",
		"TestImportNeedsTheRightToCreateClusters",
	},
	"A developer of one namespace reaches another object, namespace or permission in a member, by an override, a script, a dependency or an annotation": {
		"TestOverridePolicyCannotGrantAdmin",
		"TestOverridesCannotReachAnotherObject",
		"TestAnnotationsReachNothingButTheirOwnTemplate",
	},
	"A developer reads a Secret of another namespace, or the hub's tokens, by a binding": {
		"TestWritingBindingNeedsRightToReadTemplate",
		"TestBindingWithForeignReferenceSendsNothing",
	},
	"An agent of a cluster in Pull mode, or a token that registers one, reaches another cluster or gets more permissions": {
		"TestAgentSeesOnlyItsOwnCluster",
		"TestRegistrarGrantsOnlyThePermissionsOfAgents",
		"TestRegistrationsWithMistakesAreRefusedWithTheReason",
		"TestCertificateRequestsAreJudged",
		"TestOnlyCertificatesOfTheCurrentRegistrationAreValid",
		"TestAgentCreatesItsClusterOnlyInARegistration",
		"TestJoinsWriteNoSecretOfAnAgent",
		"TestAgentsUseNoSecretOfAnother",
	},
	"A klusterlet, or a credential that registers one, reaches another cluster or gets more permissions": {
		"TestKlusterletFromBootstrapToDeletion",
		"TestAcceptanceNeedsItsRight",
		"TestKlusterletsWriteTheMetadataOfTheirManifestWorks",
		"TestExpressionsMakeNoLongTexts",
	},
	"A developer replaces an existing object of a member, by `conflictResolution: Overwrite`": {
		"TestForbiddenOverwriteKeepsTheMembersObject",
	},
	"A user sees objects, or names of clusters, that the hub keeps in memory for [searches](search.md), without the right to read them there": {
		"TestReadersSeeOnlyWhatHubAndMemberPermit",
		"TestWatchEndsWithTheRightWithin30Seconds",
		"TestSearchAndGlobalProxyNeedTheirRights",
	},
	"A developer blocks other users by many requests, or fills the store": {
		"TestUsersQueueApartForRequestsIntoMembers",
		"TestOneUsersStreamsAndOneMembersLeaveRoomForTheOthers",
		"TestAQuotaOfTheHubBoundsTemplatesOfAnyKind",
	},
	"A user of `clusters/proxy` reaches the hub by a redirect of a member, or acts there under another name": {
		"TestRedirectOfMemberNeverReachesHub",
		"TestAMembersRedirectOfAnUpgradeLeadsNowhereEither",
		"TestHubServiceAccountIsNotMemberServiceAccount",
	},
	"A stolen token of a member's `karmada-impersonator` is used to become an administrator there": {
		"TestTheHubActsInAMemberAsThoseAloneWhomItsRolesLetIn",
	},
	"A hostile or broken member uses up the hub's memory or time, or redirects its requests": {
		"TestAHostileMemberTakesNoMoreOfTheHubThanItsLimit",
		"TestObjectsOverALimitAreNotMissing",
		"TestReadyMessageExplainsTheProblem",
	},
	"A stolen token of the hub for a member is used": {
		"TestATokenOfAMemberEndsAndIsRevoked",
	},
	"Secrets are read from the disk, a snapshot, or a backup without keys": {
		"TestNoFileOfTheStoreHasASecretInPlain",
	},
	"A stolen key of the hub is used to sign kubeconfigs or tokens": {
		"TestKeysRotateAndTheOldCountUntilForgotten",
	},
	"Another hub writes to the same member": {
		"TestTwoHubsDoNotFightOverAMember",
	},
	"An administrator deletes a definition, a namespace or a cluster by mistake, or restores an old backup": {
		"TestLostHubObjectsDeleteNothingInMembers",
		"TestUnjoinDeletesOnlyItsPreview",
		"TestDeletedDefinitionStaysInMembersUsingIt",
		"TestRestoredHubChangesNothingUntilAccepted",
		"TestRestoredHubDeletesNoRecreatedObject",
	},
}

// boundTests are the tests of each row of docs/bounds.md. Rows with none rely on code that other rows test.
var boundTests = map[string][]string{
	"member: any single response": {
		"TestAHostileMemberTakesNoMoreOfTheHubThanItsLimit",
	},
	"member: cached objects, and again as much for responses in flight": {
		"TestObjectsOverALimitAreNotMissing",
		"TestLargeListComesInPages",
	},
	"member: metrics for a user ([fleet metrics](fleet-metrics.md))": {
		"TestMemoryOfResponsesIsFreedAfterEachRequest",
		"TestClustersWithoutAnAnswerAreLeftOutAndNamed",
	},
	"members: objects cached for ResourceRegistries, and for searches": {
		"TestMemoryOfCachesIsBounded",
		"TestWatchesOfOneUserAreBounded",
		"TestSearchCachesOnDemandAndEndsWhenIdle",
	},
	"member: a single watch event": {
		"TestAHostileMemberTakesNoMoreOfTheHubThanItsLimit",
	},
	"member: response headers, or a line that is not HTTP": {
		"TestHeadersOfHTTP2AreBoundedToo",
		"TestAMembersHeadersAreReadNoFurtherThanTheirLimit",
	},
	"member: an error response": {
		"TestMemberErrorIsShortened",
	},
	"member: discovery of its kinds": {
		"TestADiscoveryLargerThanAnyClustersIsRefused",
	},
	"member: API groups that it cannot list": {
		"TestFailedDiscoveryMessageIsLimited",
	},
	"member: unhealthy pods, for `argosy why` and `argosy status`": {
		"TestTextsFromMemberAreLimited",
	},
	"member: events about pods that it cannot create, for `argosy why`": {
		"TestSilentMembersDoNotHideRefusals", "TestRefusalsAreReadWherePodsAreMissing",
	},
	"member: resource names of its nodes and pods": {
		"TestTooManyResourceNamesAreReported",
	},
	"member: `/readyz`, `/version`": {
		"TestReadyMessageExplainsTheProblem",
	},
	"member: `Retry-After`": {
		"TestAMemberCannotHaveItsCallersSleep",
	},
	"member: content of a namespace before it is deleted": {
		"TestEmptyContinuedPagesEnd",
	},
	"member: a token that it issues": nil,
	"member: its Lease, and the role for impersonation, when a user calls through the proxy": nil,
	"member: metrics (`metrics.k8s.io`, `custom.metrics.k8s.io`)": {
		"TestHangingMetricsDoNotMakeAMemberSilent",
	},
	"member's scheduler estimator (gRPC)": {
		"TestHostileEstimatorResponseIsLimited",
		"TestCallEndsAfterTimeout",
	},
	"interpreter webhook": {
		"TestWebhookFailureHasClearMessage",
		"TestUnresponsiveWebhookOpensBreaker",
	},
	"OpenID Connect issuer; webhooks for audit, authorization and key management": nil,
	"status of a member in a Work": {
		"TestReadLimitsTheStatus",
	},
	"statuses and messages of all clusters in a binding": {
		"TestLargeStatusesDoNotBlockOthers",
	},
	"nodes of a Workflow in its template": {
		"TestLargeNodesAreOmittedPartlyOrCompletely",
	},
	"rate of updates of a Workflow's nodes and progress": {
		"TestAWorkflowOfManyStepsCostsABoundedRateOfWritesOnTheHub",
		"TestFrequentChangesAreWrittenAtTheRate",
		"TestNodesOfAllWorkflowsShareOneRate",
	},
	"message of a condition": {
		"TestStatusCutsLongMessages",
	},
	"conditions of other custom resources in the template": {
		"TestConditionsOfAClusterAlwaysFitTheirSchema",
	},
	"event": {
		"TestEventMessagesAreCut",
	},
	"EndpointSlices of a Service that one cluster shares with others": {
		"TestNumberOfSharedSlicesIsLimited",
	},
	"queued requests": {
		"TestUsersQueueApartForRequestsIntoMembers",
	},
	"concurrent requests to members, including watches, `logs -f`, `exec` and all upgraded connections": {
		"TestOneUsersStreamsAndOneMembersLeaveRoomForTheOthers",
		"TestOneUserLeavesRoomForOthersInACluster",
	},
	"objects in a namespace": {
		"TestAQuotaOfTheHubBoundsTemplatesOfAnyKind",
		"TestNoWayOfWritingGoesAroundAQuotaOfTheHub",
	},
}

// rows are the first cells of all table rows of a page, without the header rows.
func rows(text string) []string {
	var found []string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		header := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|---")
		if !strings.HasPrefix(line, "| ") || header {
			continue
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		found = append(found, first)
	}
	return found
}

// verifyCovered fails if a row of the text has no entry in the table, an entry has no row, or a test of an entry does
// not exist.
func verifyCovered(t *testing.T, page, text string, table map[string][]string) {
	t.Helper()
	known, present := tests(t), map[string]bool{}
	for _, row := range rows(text) {
		if present[row] {
			t.Errorf("%s has two rows %q", page, row)
		}
		present[row] = true
		if _, ok := table[row]; !ok {
			t.Errorf("%s has the row %q: add its tests to the table of this test", page, row)
		}
	}
	for row, names := range table {
		if !present[row] {
			t.Errorf("%s has no row %q: remove it from the table of this test", page, row)
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("the test %s of the row %q does not exist", name, row)
			}
		}
	}
}

func TestEveryDoorHasTests(t *testing.T) {
	verifyCovered(t, "docs/doors.md", pages(t)[filepath.Join("docs", "doors.md")], doorTests)
	verifyNonEmpty(t, doorTests, 0)
}

func TestEveryThreatHasTests(t *testing.T) {
	text := pages(t)[filepath.Join("docs", "security.md")]
	_, section, _ := strings.Cut(text, "\n## Threats\n")
	section, _, _ = strings.Cut(section, "\n## ")
	verifyCovered(t, "docs/security.md", section, threatTests)
	verifyNonEmpty(t, threatTests, 0)
}

func TestNearlyEveryBoundHasTests(t *testing.T) {
	verifyCovered(t, "docs/bounds.md", pages(t)[filepath.Join("docs", "bounds.md")], boundTests)
	verifyNonEmpty(t, boundTests, 3)
}

// verifyNonEmpty fails if more than most rows have no tests.
func verifyNonEmpty(t *testing.T, table map[string][]string, most int) {
	t.Helper()
	var bare []string
	for row, names := range table {
		if len(names) == 0 {
			bare = append(bare, row)
		}
	}
	if len(bare) > most {
		t.Errorf("these rows have no tests: %q", bare)
	}
}
