from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.conf import settings
        from django.contrib.auth import get_user_model
        from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
        from django.db.backends.signals import connection_created
        from django.db.models.signals import post_delete, post_save

        from accounts.services.access import forget_bindings
        from accounts.services.actor import renew_actor
        from accounts.services.audit import record_failed_login, record_login, record_logout
        from accounts.services.group_roles import read_group_roles
        from accounts.services.tokens import revoke_of_inactive

        read_group_roles(settings.OIDC_GROUP_ROLES)  # an invalid setting stops the process here

        post_save.connect(revoke_of_inactive, sender=get_user_model(), dispatch_uid="revoke-of-inactive")
        post_delete.connect(forget_bindings, sender=get_user_model(), dispatch_uid="forget-bindings")
        connection_created.connect(renew_actor, dispatch_uid="renew-actor")
        user_logged_in.connect(record_login, dispatch_uid="record-login")
        user_logged_out.connect(record_logout, dispatch_uid="record-logout")
        user_login_failed.connect(record_failed_login, dispatch_uid="record-failed-login")
