"""Clusters, namespaces, roles and tokens."""

from accounts.models.audit_finding import AuditFinding
from accounts.models.audit_record import AuditRecord, AuditRecordQuerySet, AuditVerb
from accounts.models.base import ClusterObject, NamespacedObject
from accounts.models.cluster import MIRRORED_MODES, Cluster, ClusterMode, DeviceBinding
from accounts.models.external_identity import ExternalIdentity
from accounts.models.kept_answer import KeptAnswer
from accounts.models.managed_fields import ManagedFields
from accounts.models.manifest_template import ManifestTemplate
from accounts.models.namespace import Namespace
from accounts.models.role import Role, RoleBinding
from accounts.models.saved_view import SavedView
from accounts.models.service_account import ServiceAccount
from accounts.models.token import TokenDetails, TokenScope

__all__ = [
    "MIRRORED_MODES",
    "AuditFinding",
    "AuditRecord",
    "AuditRecordQuerySet",
    "AuditVerb",
    "Cluster",
    "ClusterMode",
    "ClusterObject",
    "DeviceBinding",
    "ExternalIdentity",
    "KeptAnswer",
    "ManagedFields",
    "ManifestTemplate",
    "Namespace",
    "NamespacedObject",
    "Role",
    "RoleBinding",
    "SavedView",
    "ServiceAccount",
    "TokenDetails",
    "TokenScope",
]
