from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect signals."""
        from django.contrib.auth import get_user_model
        from django.db.models.signals import post_save

        from accounts.services.tokens import revoke_of_inactive

        post_save.connect(revoke_of_inactive, sender=get_user_model(), dispatch_uid="revoke-of-inactive")
