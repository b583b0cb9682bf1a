"""The price of an hour of a resource."""

from django.db import models
from django.db.models import Q


class Price(models.Model):
    """The price of a resource in a flavor for an hour: of a core, a GiB, a whole device, or one of anything else."""

    cluster = models.ForeignKey(
        "accounts.Cluster",
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The cluster in which the price applies.",
    )
    flavor = models.CharField(max_length=253, blank=True, help_text="Empty: in every flavor that has none of its own.")
    resource = models.CharField(max_length=317, help_text="`device` for whole devices.")
    per_hour = models.DecimalField(max_digits=14, decimal_places=6, help_text="The price of one hour.")
    currency = models.CharField(max_length=3, help_text="ISO 4217")

    class Meta:
        ordering = ["flavor", "resource"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "flavor", "resource"], name="price_unique"),
            models.CheckConstraint(condition=Q(per_hour__gte=0), name="price_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.resource} {self.flavor}: {self.per_hour} {self.currency}"
