"""The addresses of sessions, tokens and the audit."""

from django.urls import path

from accounts.api import audit, device_login, service_accounts, session, tokens, users
from accounts.api.own import manifest_templates, saved_views

urlpatterns = [
    path("session/", session.SessionView.as_view()),
    path("auth/login/", session.LoginView.as_view()),
    path("auth/logout/", session.LogoutView.as_view()),
    path("auth/token/", tokens.TokenView.as_view()),
    path("auth/tokens/", tokens.TokenListView.as_view()),
    path("auth/device/", device_login.DeviceView.as_view()),
    path("auth/device/token/", device_login.DeviceTokenView.as_view()),
    path("auth/device/<str:user_code>/", device_login.DeviceRequestView.as_view()),
    path("manifest-templates/", manifest_templates.ManifestTemplateListView.as_view()),
    path("manifest-templates/<int:template_id>/", manifest_templates.ManifestTemplateView.as_view()),
    path("saved-views/", saved_views.SavedViewListView.as_view()),
    path("saved-views/<int:view_id>/", saved_views.SavedViewView.as_view()),
    path("service-accounts/", service_accounts.ServiceAccountListView.as_view()),
    path("service-accounts/<str:name>/", service_accounts.ServiceAccountView.as_view()),
    path("service-accounts/<str:name>/tokens/", service_accounts.ServiceAccountTokenListView.as_view()),
    path("service-accounts/<str:name>/tokens/<uuid:token_id>/", service_accounts.ServiceAccountTokenView.as_view()),
    path("users/", users.UserListView.as_view()),
    path("users/<str:name>/", users.UserView.as_view()),
    path("users/<str:name>/tokens/", users.UserTokenListView.as_view()),
    path("users/<str:name>/tokens/<uuid:token_id>/", users.UserTokenView.as_view()),
    path("audit/", audit.AuditListView.as_view()),
    path("audit/export/", audit.AuditExportView.as_view()),
    path("auth/tokens/<uuid:token_id>/", tokens.TokenDetailView.as_view()),
]
