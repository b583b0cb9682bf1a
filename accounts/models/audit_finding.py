"""Open findings of the auditor."""

from django.db import models


class AuditFinding(models.Model):
    """A broken invariant. It is reported once audits have found it for a while, and removed when an audit no longer
    finds it."""

    cluster = models.ForeignKey(
        "accounts.Cluster", on_delete=models.CASCADE, related_name="+", help_text="The audited cluster."
    )
    check_name = models.CharField(max_length=32, help_text="Which rule.")
    subject = models.CharField(max_length=512, help_text="Of which object: a namespace/name, a node/device.")
    namespace = models.CharField(
        max_length=63, blank=True, help_text="The namespace of the object; empty if it has none."
    )
    node = models.CharField(max_length=253, blank=True, help_text="The node of the object; empty if it has none.")
    message = models.TextField(help_text="The broken rule in words, with the values that differ.")
    first_seen_at = models.DateTimeField(help_text="When an audit first found it.")
    confirmed = models.BooleanField(default=False, help_text="Whether the audit before had seen it too.")

    class Meta:
        ordering = ["check_name", "subject"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "check_name", "subject"], name="audit_finding_unique")
        ]

    def __str__(self) -> str:
        return f"{self.check_name}: {self.subject}"
