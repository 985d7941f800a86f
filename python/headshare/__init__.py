from headshare.models import load
